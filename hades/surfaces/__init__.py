"""What people and programs touch: the command line now, the service and the explorer page later. Thin on purpose."""
