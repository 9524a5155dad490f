package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

type job[T any] struct {
	ctx    context.Context
	work   func(context.Context) (T, error)
	answer chan T
}

type Pool[T any] struct {
	jobs chan job[T]
}

func NewPool[T any](workers int) *Pool[T] {
	pool := &Pool[T]{jobs: make(chan job[T])}
	for i := 0; i < workers; i++ {
		go pool.work()
	}
	return pool
}

func (p *Pool[T]) work() {
	for one := range p.jobs {
		answer, err := one.work(one.ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		one.answer <- answer
	}
}

func (p *Pool[T]) Submit(ctx context.Context, work func(context.Context) (T, error)) (T, error) {
	one := job[T]{ctx, work, make(chan T, 1)}
	var zero T
	select {
	case p.jobs <- one:
	case <-ctx.Done():
		return zero, ctx.Err()
	}
	return <-one.answer, nil
}

type inventory struct {
	pool *Pool[string]
	base string
}

func (i *inventory) lookup(ctx context.Context, id string) (string, error) {
	return i.pool.Submit(ctx, func(ctx context.Context) (string, error) {
		request, _ := http.NewRequestWithContext(ctx, "GET", i.base+"/stock?id="+id, nil)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	})
}

func main() {
	stock := &inventory{NewPool[string](2), "http://127.0.0.1:" + os.Args[2]}
	http.HandleFunc("/items", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		defer cancel()
		answer, err := stock.lookup(ctx, r.URL.Query().Get("id"))
		if err != nil {
			http.Error(w, err.Error(), 503)
			return
		}
		fmt.Fprintln(w, answer)
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
