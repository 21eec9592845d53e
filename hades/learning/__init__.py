"""What is fitted from the graph: weights of edges, registered with their snapshot so that any night can be restored."""
