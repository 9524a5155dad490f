package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"time"
)

func readRow(pause time.Duration, key string) string {
	time.Sleep(pause)
	return fmt.Sprintf("%s 17 pieces", key)
}

func session(conn net.Conn, pause time.Duration) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		fmt.Fprintln(conn, readRow(pause, lines.Text()))
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	millis, _ := strconv.Atoi(os.Args[2])
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go session(conn, time.Duration(millis)*time.Millisecond)
	}
}
