"""What is explained: outputs, and the scalar of them."""
