"""Write an array anew from another one, in any format, and prove that the values are kept."""
