"""The `staging` committers (papers 000 and 001): files are staged on local disks and uploaded at task commit."""
