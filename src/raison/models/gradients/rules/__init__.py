"""Other ways back through a model than the gradient's; forward values stay its own."""
