"""Models made from a model: randomised twins, students, trained explainers, masked language models beside it."""
