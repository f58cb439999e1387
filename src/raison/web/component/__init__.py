"""What a page and a notebook show: the component, the records that it paints, and the notebook's widget."""
