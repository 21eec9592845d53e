"""The two stores behind one port."""
