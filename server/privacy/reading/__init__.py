"""What files hold as text: in which encoding, and what is packed in them."""
