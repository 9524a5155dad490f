package main

import "time"

type event struct {
	payload [600]byte
}

type poller struct {
	events chan event
}

func (p *poller) next() (event, bool) {
	last := new(event)
	timer := time.AfterFunc(time.Hour, func() { last.payload[0]++ })
	_ = timer
	select {
	case one := <-p.events:
		*last = one
		return one, true
	case <-time.After(time.Hour):
		return *last, false
	}
}

func main() {
	p := &poller{make(chan event, 8)}
	go func() {
		for {
			for i := 0; i < 8; i++ {
				p.events <- event{}
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	for {
		p.next()
	}
}
