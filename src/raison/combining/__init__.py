"""What methods that are made of other methods share, and what the choice among methods rests on."""
