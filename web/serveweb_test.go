package web

import (
	"bufio"
	"context"
	"io"
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

// TestHalfRequests: a local user opens 400 half requests, and a whole one is answered
// at once: while the youngest half ones are still open. A stranger's connection ends
// with the answer.
func TestHalfRequests(t *testing.T) {
	v := newVisit(t, Options{})
	address := v.serve()
	var open []net.Conn
	for range 400 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+address+"\r\n") // it may be closed already
		open = append(open, c)
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
	for i := range 400 - limits.PerPeer {
		if _, err := open[i].Read(make([]byte, 1)); err == nil {
			t.Fatalf("half request %d was answered, want closed", i)
		}
	}
	kept := open[400-limits.PerPeer+4] // each of the two requests took the place of one
	if _, err := io.WriteString(kept, "\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(kept), nil)
	if err != nil {
		t.Fatalf("one of the youngest half requests was closed: %v", err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("one of the youngest half requests, finished: %d", resp.StatusCode)
	}
}
