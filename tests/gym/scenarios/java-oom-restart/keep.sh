#!/bin/sh
# Starts the importer again when it ends.
while :; do
    java -Xmx900m -Xms16m -cp "$1" Importer
    sleep 0.2
done
