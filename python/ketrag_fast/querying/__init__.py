"""One question over one opened generation: what is open, what is asked, what is given back."""
