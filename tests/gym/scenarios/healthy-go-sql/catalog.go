package main

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// A driver for a store with a protocol of lines.
type storeDriver struct{}
type storeConn struct {
	conn   net.Conn
	reader *bufio.Reader
}
type storeStmt struct {
	conn  *storeConn
	query string
}
type storeRows struct{ left []string }

func (storeDriver) Open(name string) (driver.Conn, error) {
	conn, err := net.Dial("tcp", name)
	if err != nil {
		return nil, err
	}
	return &storeConn{conn, bufio.NewReader(conn)}, nil
}
func (c *storeConn) Prepare(query string) (driver.Stmt, error) { return &storeStmt{c, query}, nil }
func (c *storeConn) Close() error                              { return c.conn.Close() }
func (c *storeConn) Begin() (driver.Tx, error)                 { return nil, errors.New("no transactions") }
func (s *storeStmt) Close() error                              { return nil }
func (s *storeStmt) NumInput() int                             { return -1 }
func (s *storeStmt) Exec([]driver.Value) (driver.Result, error) {
	return nil, errors.New("read only")
}
func (s *storeStmt) Query([]driver.Value) (driver.Rows, error) {
	fmt.Fprintf(s.conn.conn, "%s\n", s.query)
	line, err := s.conn.reader.ReadString('\n')
	if err != nil {
		return nil, driver.ErrBadConn
	}
	return &storeRows{strings.Fields(line)}, nil
}
func (r *storeRows) Columns() []string { return []string{"value"} }
func (r *storeRows) Close() error      { return nil }
func (r *storeRows) Next(into []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	into[0], r.left = r.left[0], r.left[1:]
	return nil
}

type Catalog struct{ db *sql.DB }

func (c *Catalog) FindProduct(ctx context.Context, id string) (string, error) {
	var name string
	err := c.db.QueryRowContext(ctx, "GET product "+id).Scan(&name)
	return name, err
}

func (c *Catalog) serveProduct(w http.ResponseWriter, r *http.Request) {
	name, err := c.FindProduct(r.Context(), r.URL.Query().Get("id"))
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	fmt.Fprintln(w, name)
}

func main() {
	sql.Register("store", storeDriver{})
	db, _ := sql.Open("store", os.Args[2])
	limit, _ := strconv.Atoi(os.Args[3])
	db.SetMaxOpenConns(limit)
	db.SetMaxIdleConns(limit)
	catalog := &Catalog{db}
	http.HandleFunc("/product", catalog.serveProduct)
	http.ListenAndServe(os.Args[1], nil)
}
