"""Models derived from a model: randomised copies, students, trained explainers, masked language models."""
