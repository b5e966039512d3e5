package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/halfopen"
)

// TestHalfRequests: while a user has 400 requests open with half a body each, the API
// and the metrics answer whole ones of the same user, and have closed the oldest.
func TestHalfRequests(t *testing.T) {
	a, _ := loadedAgent(t, "")
	socket := filepath.Join(t.TempDir(), "agent.sock")
	for _, c := range []struct {
		network, address string
		limits           halfopen.Limits
		serve            func(context.Context, net.Listener) error
	}{
		{"unix", socket, apiLimits, a.runAPI},
		{"tcp", "127.0.0.1:0", scrapeLimits, a.serveScrapes},
	} {
		ln, err := net.Listen(c.network, c.address)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.serve(ctx, ln) }()
		wantHalfRequestsClosed(t, c.network, ln.Addr().String(), c.limits.PerPeer)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// wantHalfRequestsClosed opens half requests at a server, and asks it whole ones.
func wantHalfRequestsClosed(t *testing.T, network, address string, perPeer int) {
	t.Helper()
	const half = 400
	say := func(text string) net.Conn {
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, text) // it may be closed already
		return c
	}
	var open []net.Conn
	for range half {
		open = append(open, say("GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"))
	}
	for i := range 10 {
		resp, err := http.ReadResponse(bufio.NewReader(say("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")), nil)
		if err != nil {
			t.Fatalf("%s: request %d: %v", network, i, err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: request %d: %d", network, i, resp.StatusCode)
		}
	}
	for i, c := range open[:half-perPeer] {
		c.SetReadDeadline(time.Now().Add(time.Minute)) // bounds a failing test
		if n, err := c.Read(make([]byte, 1)); n > 0 || isTimeoutError(err) {
			t.Fatalf("%s: half request %d of %d: %s", network, i, half, fmt.Sprint(n, err))
		}
	}
}

func isTimeoutError(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}
