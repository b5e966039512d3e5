package halfopen

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// long is longer than a test takes: nothing here ends because time has passed.
const long = time.Hour

// attackers is how many half requests are open at once.
const attackers = 400

var limits = Limits{PerPeer: 16, Total: 32, Header: long, Body: long, Idle: long, HeaderBytes: 1 << 14, BodyBytes: 1 << 10}

// serve serves on a listener until the test ends.
func serve(t *testing.T, network string, l Limits, h http.HandlerFunc) (s *Server, address string) {
	t.Helper()
	address = "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s = &Server{Limits: l, Handler: h, Name: "test"}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, ln.Addr().String()
}

// say opens a connection and sends a text.
func say(t *testing.T, network, address, text string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, text) // it may be closed already
	return c
}

// answer is the status and the text of one answer.
func answer(c net.Conn) (int, string, error) {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func echo(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }

var (
	halfHead = "GET / HTTP/1.1\r\nHost: x\r\n"
	halfBody = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"
	request  = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nwhole"
)

// TestHalfRequests: while a peer has 400 half requests open, whole ones of the same
// peer are answered; the oldest half requests are closed, the youngest are kept.
func TestHalfRequests(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for name, text := range map[string]string{"nothing": "", "heads": halfHead, "bodies": halfBody} {
			t.Run(network+" "+name, func(t *testing.T) {
				s, address := serve(t, network, limits, echo)
				var open []net.Conn
				for range attackers {
					open = append(open, say(t, network, address, text))
				}
				for range 10 {
					if code, text, err := answer(say(t, network, address, request)); code != 200 || text != "whole" || err != nil {
						t.Fatalf("a whole request: %d %q %v", code, text, err)
					}
				}
				for i := range attackers - limits.PerPeer {
					if _, err := open[i].Read(make([]byte, 1)); err == nil {
						t.Fatalf("half request %d was answered, want closed", i)
					}
				}
				s.mu.Lock()
				n := s.closed
				s.mu.Unlock()
				if n < attackers-uint64(limits.PerPeer) || n > attackers+10 {
					t.Errorf("%d connections were closed", n)
				}
				youngest := open[attackers-1]
				if text == halfBody {
					io.WriteString(youngest, " done")
					if code, text, err := answer(youngest); code != 200 || text != "half done" || err != nil {
						t.Errorf("the youngest, finished: %d %q %v", code, text, err)
					}
				}
			})
		}
	}
}

// TestStreamsStay: requests in progress are never closed for half ones, and only when
// there is no other connection is a new one closed.
func TestStreamsStay(t *testing.T) {
	l := limits
	l.Total = 8
	next := make(chan struct{})
	_, address := serve(t, "tcp", l, func(w http.ResponseWriter, r *http.Request) {
		for i := range 2 {
			fmt.Fprintln(w, i)
			http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	var streams []*bufio.Reader
	for i := range 8 {
		for range 20 {
			say(t, "tcp", address, halfHead)
		}
		b := bufio.NewReader(say(t, "tcp", address, strings.Replace(request, "POST /", fmt.Sprintf("POST /%d", i), 1)))
		line(t, b, "0\n")
		streams = append(streams, b)
	}
	if _, _, err := answer(say(t, "tcp", address, request)); err == nil {
		t.Error("a ninth request was answered, want closed")
	}
	close(next)
	for _, b := range streams {
		line(t, b, "1\n")
	}
}

// line reads an answer up to a line.
func line(t *testing.T, b *bufio.Reader, want string) {
	t.Helper()
	for {
		switch text, err := b.ReadString('\n'); {
		case err != nil:
			t.Fatalf("the stream ended before %q: %v", want, err)
		case text == want:
			return
		}
	}
}

// TestStreamOutlivesDeadlines: the times are those of a request, not of its answer.
func TestStreamOutlivesDeadlines(t *testing.T) {
	l := limits
	l.Header, l.Body = time.Second, time.Second
	_, address := serve(t, "tcp", l, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			fmt.Fprint(w, "cut")
		case <-time.After(2 * l.Header):
			fmt.Fprint(w, "whole")
		}
	})
	for _, text := range []string{request, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"} {
		if _, text, err := answer(say(t, "tcp", address, text)); text != "whole" || err != nil {
			t.Errorf("%q %v", text, err)
		}
	}
	if code, _, err := answer(say(t, "tcp", address, halfBody)); code != http.StatusRequestTimeout || err != nil {
		t.Errorf("half a body: %d %v", code, err)
	}
	if _, _, err := answer(say(t, "tcp", address, halfHead)); err == nil {
		t.Error("half a head was answered")
	}
}

// TestBodyBytes: a body that is too large is refused.
func TestBodyBytes(t *testing.T) {
	_, address := serve(t, "tcp", limits, echo)
	text := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", limits.BodyBytes+1) + strings.Repeat("x", int(limits.BodyBytes)+1)
	if code, text, err := answer(say(t, "tcp", address, text)); code != http.StatusRequestEntityTooLarge || err != nil {
		t.Errorf("%d %q %v", code, text, err)
	}
}

// TestPeers: the addresses that are one peer.
func TestPeers(t *testing.T) {
	for _, c := range []struct{ remote, want string }{
		{"127.0.0.1:5", "loopback"}, {"127.9.9.9:5", "loopback"}, {"[::1]:5", "loopback"}, {"[::ffff:127.0.0.1]:5", "loopback"},
		{"192.0.2.7:5", "192.0.2.7"}, {"[2001:db8::1:2:3]:5", "2001:db8::/64"}, {"[fe80::1%eth0]:5", "fe80::/64"},
	} {
		if got := peerOf(&from{remote: c.remote}); got != c.want {
			t.Errorf("%s is %q, want %q", c.remote, got, c.want)
		}
	}
}

// from is a connection of which only the peer's address is known.
type from struct {
	net.Conn
	remote string
}

func (f *from) RemoteAddr() net.Addr { return f }
func (f *from) Network() string      { return "tcp" }
func (f *from) String() string       { return f.remote }
