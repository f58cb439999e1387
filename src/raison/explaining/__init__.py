"""From a model and texts to explanations: methods are called here, what metrics ask is answered, maps are selected."""
