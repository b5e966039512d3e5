package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Servers: the echo server for a pod's floods, and attacks of a local user on the agent's
// servers.

// echoPort is the UDP port of the echo server.
const echoPort = 5001

// answerUDP starts a UDP echo server in a pod.
func (s *stage) answerUDP(pod string) (stop func(), err error) {
	const buffer = 4 << 20
	var c net.PacketConn
	err = s.lab.In(pod, func() error {
		c, err = net.ListenPacket("udp", fmt.Sprintf(":%d", echoPort))
		return err
	})
	if err != nil {
		return nil, err
	}
	raw, err := c.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) })
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	go runEcho(c)
	return func() { c.Close() }, nil
}

// runEcho answers until the socket is closed.
func runEcho(c net.PacketConn) {
	b := make([]byte, 2048)
	for {
		n, from, err := c.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			c.WriteTo(b[:n], from)
		}
	}
}

// pageAddress is the address of the page in each Node.
const pageAddress = "127.0.0.1:10353"

// halves is the number of half requests that a local user keeps open.
const halves = 400

// halfRequest is the beginning of an unfinished request.
const halfRequest = "GET / HTTP/1.1\r\nHost: antrail\r\n"

// openHalves opens connections as a local user and begins a request on each. letGo closes
// them.
func (s *stage) openHalves(as func(string, func() error) error, network, address string) (sent int, err error) {
	err = as(nodeA, func() error {
		for range halves {
			c, err := net.DialTimeout(network, address, time.Second)
			if err != nil {
				break // a refusal is an answer, too
			}
			s.held = append(s.held, c)
			if _, err := c.Write([]byte(halfRequest)); err == nil {
				sent++
			}
		}
		return nil
	})
	return sent, err
}

func halfRequests(_ context.Context, s *stage) (int, error) {
	return s.openHalves(s.asNobody, "tcp", pageAddress)
}

// halfAPI runs as root: no other user may connect to the socket.
func halfAPI(_ context.Context, s *stage) (int, error) {
	return s.openHalves(s.lab.In, "unix", s.lab.Socket(nodeA))
}

// letGo closes the attack's connections.
func letGo(_ context.Context, s *stage) error {
	for _, c := range s.held {
		c.Close()
	}
	s.held = nil
	return nil
}

// wantPage checks that the page answers another local user, with any status.
func wantPage(ctx context.Context, s *stage) error {
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		err = s.lab.In(nodeA, func() error {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			c, err = d.DialContext(ctx, "tcp", pageAddress)
			return err
		})
		return c, err
	}
	client := http.Client{Timeout: answerTime, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pageAddress+"/", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return damage{fmt.Errorf("the page does not answer another user: %w", err)}
	}
	return answer.Body.Close()
}

// answerTime is how long a server may take to answer while half requests are open. It is
// shorter than the server's limit for those.
const answerTime = 4 * time.Second

// wantAPI checks that the agent answers at its socket.
func wantAPI(ctx context.Context, s *stage) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := s.agent(nodeA).Ready(ctx); err != nil {
		return damage{fmt.Errorf("the API does not answer: %w", err)}
	}
	return nil
}
