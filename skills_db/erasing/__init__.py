"""What erasing a person needs: which values tell of one person, and what else keeps them."""
