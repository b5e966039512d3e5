package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// hold reports what ended its connection, and does not open a second one.
func TestHoldSaysWhatEndsItsConnection(t *testing.T) {
	for want, end := range map[string]func(*net.TCPConn) error{
		"EOF":                      func(c *net.TCPConn) error { return nil },
		"connection reset by peer": func(c *net.TCPConn) error { return c.SetLinger(0) },
	} {
		t.Run(want, func(t *testing.T) {
			var requests, connections atomic.Int32
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) <= 3 {
					io.WriteString(w, "web-1 10.10.0.3\n")
					return
				}
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				if err := end(c.(*net.TCPConn)); err != nil {
					t.Error(err)
				}
				c.Close()
			}))
			s.Config.ConnState = func(c net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			s.Start()
			defer s.Close()
			input, more := io.Pipe()
			defer more.Close()
			_, err := holdUntil(input, s.Listener.Addr().String())
			if err == nil || !strings.Contains(err.Error(), "after 3 answers") || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%v, want 3 answers and %s", err, want)
			}
			if n := connections.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// Hold goes on over one connection until its input ends.
func TestHoldEndsWithItsInput(t *testing.T) {
	input, more := io.Pipe()
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 5 {
			more.Close()
		}
		io.WriteString(w, "web-1 10.10.0.3\n")
	}))
	defer s.Close()
	said, err := holdUntil(input, s.Listener.Addr().String())
	if err != nil || !strings.Contains(said, " answers, the longest after ") || requests.Load() < 5 {
		t.Errorf("%q, %v after %d questions", said, err, requests.Load())
	}
}
