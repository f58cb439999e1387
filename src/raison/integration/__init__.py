"""What methods that gather gradients along paths share: where paths begin, many of them at once, the sums."""
