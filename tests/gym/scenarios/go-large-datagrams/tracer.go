package main

import (
	"bytes"
	"net"
	"os"
	"time"
)

type Span struct {
	name string
	tags []byte
}

type Reporter struct {
	conn net.Conn
	lost int
}

func (r *Reporter) Flush(spans []Span) {
	var batch bytes.Buffer
	for _, span := range spans {
		batch.WriteString(span.name)
		batch.Write(span.tags)
	}
	if _, err := r.conn.Write(batch.Bytes()); err != nil {
		r.lost += len(spans)
	}
}

func main() {
	conn, err := net.Dial("udp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	reporter := &Reporter{conn: conn}
	spans := make([]Span, 800)
	for i := range spans {
		spans[i] = Span{"GET /orders", bytes.Repeat([]byte{'t'}, 90)}
	}
	for {
		reporter.Flush(spans)
		time.Sleep(40 * time.Millisecond)
	}
}
