"""What a turn cost and why: reads, work, time, reasons."""
