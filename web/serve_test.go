package web

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"
)

// serve serves a page, and returns its address.
func (v *visit) serve() string {
	v.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		v.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ln, v.page) }()
	v.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			v.Error(err)
		}
	})
	return ln.Addr().String()
}

// TestSilentConnections: who takes all places and says nothing loses them, and a
// stranger's place is free with the answer.
func TestSilentConnections(t *testing.T) {
	v := newVisit(t, Options{})
	address := v.serve()
	for range maxConnections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	client := &http.Client{Timeout: time.Minute}
	for range 2 {
		resp, err := client.Get("http://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized || !resp.Close {
			t.Errorf("%d, closed with the answer: %v", resp.StatusCode, resp.Close)
		}
	}
}
