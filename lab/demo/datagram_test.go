package demo

import (
	"bytes"
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

// echoService is a UDP Service of the echo servers in the client pods.
const echoService = `
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: default}
spec: {selector: {app: client}, ipFamilyPolicy: PreferDualStack, clusterIP: 10.96.7.7, clusterIPs: [10.96.7.7, "fd00:10:96::77"], ports: [{protocol: UDP, port: 7, targetPort: 5001}]}
`

// TestLongDatagramsToAService sends datagrams in fragments to a UDP Service with a local
// endpoint, a remote one, and the client itself. That covers both directions of NAT, for
// the client itself in two zones. All fragments of a connection's first datagram must
// choose the same endpoint.
func TestLongDatagramsToAService(t *testing.T) {
	l := plainLab(t)
	w := l.world(t)
	l.put(t, "echo.yaml", echoService)
	for _, node := range []string{"node-a", "node-b"} {
		waitUntil(t, "entries of the Service on "+node, func() bool {
			flows, err := w.agent(node).Get(t.Context(), "/flows", nil)
			return err == nil && bytes.Contains(flows, []byte("nw_dst=10.96.7.7,")) && bytes.Contains(flows, []byte("ipv6_dst=fd00:10:96::77,"))
		})
	}
	for _, from := range []string{"db-a", "client-a", "client-b"} {
		for range 8 { // a new port each time, and so another endpoint
			if err := w.echo(t.Context(), from, "10.96.7.7:7", longDatagram, longDatagram); err != nil {
				t.Error(err)
			}
			if err := w.echo(t.Context(), from, "[fd00:10:96::77]:7", longDatagram, longDatagram); err != nil {
				t.Error(err)
			}
		}
	}
}

// lossy is a connection to an echo server that drops the first packets.
type lossy struct {
	net.Conn
	loses   int
	sends   [][]byte
	answers [][]byte
}

func (l *lossy) Write(b []byte) (int, error) {
	if l.sends = append(l.sends, slices.Clone(b)); len(l.sends) > l.loses {
		l.answers = append(l.answers, slices.Clone(b))
	}
	return len(b), nil
}

func (l *lossy) Read(b []byte) (int, error) {
	if len(l.answers) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, l.answers[0])
	l.answers = l.answers[1:]
	return n, nil
}

func (l *lossy) SetReadDeadline(time.Time) error { return nil }

// TestEchoSendsAgain: if fragments of a datagram were lost, the same datagram is sent
// again, up to the limit. Late answers to it do not count as answers to the next one.
func TestEchoSendsAgain(t *testing.T) {
	l := &lossy{loses: 2}
	e := echoConn{Conn: l}
	if err := e.exchange(100, 5, resendAfter); err != nil || len(l.sends) != 3 {
		t.Errorf("%d sends, %v", len(l.sends), err)
	}
	if !slices.Equal(l.sends[0], l.sends[2]) {
		t.Error("another datagram was sent instead")
	}
	l.answers = append(l.answers, l.sends[0], l.sends[0])
	if err := e.exchange(100, 1, resendAfter); err != nil || len(l.sends) != 4 {
		t.Errorf("behind late answers: %d sends, %v", len(l.sends), err)
	}
	l.answers = [][]byte{{1, 2, 3}}
	if err := e.exchange(100, 5, resendAfter); err == nil || isTimeout(err) {
		t.Errorf("other bytes: %v", err)
	}
	l = &lossy{loses: 100}
	e = echoConn{Conn: l}
	if err := e.exchange(100, 5, resendAfter); !isTimeout(err) || len(l.sends) != 5 {
		t.Errorf("all is lost: %d sends, %v", len(l.sends), err)
	}
}
