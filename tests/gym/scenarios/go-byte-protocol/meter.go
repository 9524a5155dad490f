package main

import (
	"fmt"
	"log"
	"net"
	"os"
	"time"
)

type frameReader struct{ conn net.Conn }

func (f *frameReader) readByte() (byte, error) {
	var one [1]byte
	_, err := f.conn.Read(one[:])
	return one[0], err
}

func (f *frameReader) nextFrame() ([]byte, error) {
	var frame []byte
	for {
		b, err := f.readByte()
		if err != nil {
			return nil, err
		}
		if b == '\n' {
			return frame, nil
		}
		frame = append(frame, b)
	}
}

func collect(conn net.Conn) {
	reader, total := &frameReader{conn}, 0
	for {
		frame, err := reader.nextFrame()
		if err != nil {
			return
		}
		total += len(frame)
	}
}

func feed(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	for n := 0; ; n++ {
		fmt.Fprintf(conn, "meter %08d value %010d unit kWh phase L1 status ok tariff 2 end\n", n, n*17)
		if n%40 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func main() {
	if os.Args[1] == "feed" {
		feed("127.0.0.1:" + os.Args[2])
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go collect(conn)
	}
}
