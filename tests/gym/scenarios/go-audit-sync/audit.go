package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"syscall"
)

func newAuditLog(path string) (*log.Logger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_SYNC, 0o600)
	if err != nil {
		return nil, err
	}
	return log.New(file, "audit ", log.LstdFlags), nil
}

type accounts struct{ audit *log.Logger }

func (a *accounts) transfer(w http.ResponseWriter, r *http.Request) {
	for _, step := range []string{"authorize", "debit", "credit", "notify"} {
		a.audit.Printf("%s %s", step, r.URL.Path)
	}
	fmt.Fprint(w, "done")
}

func main() {
	audit, err := newAuditLog(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/transfer/", (&accounts{audit}).transfer)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
