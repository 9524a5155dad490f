"""The live rooms, each about one thing of the running kernel; imports between them go down."""
