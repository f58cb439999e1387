"""The component of pages and notebooks: its scripts, the records that it draws, and the notebook's widget."""
