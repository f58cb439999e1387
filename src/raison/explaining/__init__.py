"""From a model and texts to explanations: runs methods, provides evidence for metrics, selects maps."""
