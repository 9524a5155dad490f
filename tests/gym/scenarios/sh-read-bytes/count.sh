#!/bin/sh
orders=0
while read -r day shop level text; do
  case $text in order*) orders=$((orders + 1)) ;; esac
done
