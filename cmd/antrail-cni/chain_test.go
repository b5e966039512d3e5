package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/cni/plugin"
	"github.com/antrail/antrail/internal/nstest"
)

// TestPortmap: a hostPort of a chained portmap leads to the Pod, from outside and
// from the Node itself; CHECK passes through the whole chain, DEL takes it back.
func TestPortmap(t *testing.T) {
	w := newWorld(t, "a")
	w.setConf("", `{"type": "portmap", "capabilities": {"portMappings": true}, "backend": "nftables"}`)
	outside := nstest.New(t)
	nstest.AddVeth(t, w.node, "uplink", outside, "eth0")
	w.node.AddAddress(t, "uplink", "192.168.77.1/24")
	outside.AddAddress(t, "eth0", "192.168.77.9/24")
	w.start()
	a := w.sandbox("a")
	a.caps = `{"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}`
	w.addSandbox(a)
	w.must("check", a)
	a.serve(t, ":80", "from the Pod")
	for _, from := range []*nstest.Namespace{outside, w.node} {
		var got string
		w.eventually("the Pod's answer to "+from.Name, func() (err error) {
			got, err = fetch(t, from, "192.168.77.1:8080")
			return err
		})
		if got != "from the Pod" {
			t.Errorf("%s: %q", from.Name, got)
		}
	}
	w.must("del", a)
	if err := w.node.Links().LinkDel(w.node.Link(t, "uplink")); err != nil {
		t.Error(err)
	}
	if out, err := w.node.Command("nft", "list", "ruleset").CombinedOutput(); err != nil || strings.Contains(string(out), "8080") {
		t.Errorf("after DEL: %v\n%s", err, out)
	}
	w.wantNothing()
}

// serve answers each TCP connection in the sandbox with a text.
func (s *sandbox) serve(t *testing.T, address, text string) {
	t.Helper()
	var ln net.Listener
	var err error
	s.Do(t, func() { ln, err = net.Listen("tcp", address) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, text)
			c.Close()
		}
	}()
}

// fetch reads what a server says.
func fetch(t *testing.T, from *nstest.Namespace, address string) (string, error) {
	var c net.Conn
	var err error
	from.Do(t, func() { c, err = net.Dial("tcp", address) })
	if err != nil {
		return "", err
	}
	defer c.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(c)
	return b.String(), err
}

// TestConflist: the conflist that is delivered works, with the agent's socket at its
// place.
func TestConflist(t *testing.T) {
	w := newWorld(t, "a")
	text, err := os.ReadFile("../../deploy/cni/10-antrail.conflist")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), plugin.DefaultSocket) {
		t.Errorf("it does not name %s", plugin.DefaultSocket)
	}
	w.write("net.d/10-antrail.conflist", strings.Replace(string(text), plugin.DefaultSocket, w.socket(), 1))
	w.start()
	a := w.sandbox("a")
	a.caps = `{"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}], "bandwidth": {"egressRate": 1000000, "egressBurst": 1000000}}`
	r := w.addSandbox(a)
	if r.CNIVersion != "1.0.0" || len(r.IPs) != 2 {
		t.Errorf("%+v", r)
	}
	if err := a.ping(r.IPs[0].Gateway.String()); err != nil {
		t.Error(err)
	}
	w.must("check", a)
	w.must("del", a)
	w.wantNothing()
}

// TestBandwidth: a chained bandwidth limits what the Pod receives, the plugin
// itself what it sends. Pods without limits have none.
func TestBandwidth(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.setConf(`, "capabilities": {"bandwidth": true}`, `{"type": "bandwidth", "capabilities": {"bandwidth": true}}`)
	w.start()
	a, b, c := w.sandbox("a"), w.sandbox("b"), w.sandbox("c")
	b.caps = `{"bandwidth": {"ingressRate": 80000, "ingressBurst": 160000, "egressRate": 80000, "egressBurst": 160000}}`
	w.addSandbox(a)
	w.addSandbox(b)
	w.addSandbox(c)
	w.must("check", b)
	toB, fromB, free := a.flood(t, b), b.flood(t, a), a.flood(t, c)
	if toB == 0 || toB > floodSize/4 || fromB == 0 || fromB > floodSize/4 || free < floodSize*3/4 {
		t.Errorf("of %d datagrams %d came to the Pod, %d from it, and %d between others", floodSize, toB, fromB, free)
	}
	tc := b.Command("tc", "qdisc", "del", "dev", "eth0", "root")
	if out, err := tc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := w.cnitool("check", b); err == nil {
		t.Error("CHECK does not miss the limit")
	}
	for _, s := range []*sandbox{a, b, c} {
		w.must("del", s)
	}
	w.wantNothing()
}

// floodSize is how many datagrams of a kilobyte flood sends.
const floodSize = 400

// flood sends datagrams faster than any limit of these tests, and counts those that
// arrive.
func (s *sandbox) flood(t *testing.T, to *sandbox) (n int) {
	t.Helper()
	var server net.PacketConn
	var client net.Conn
	var err error
	to.Do(t, func() { server, err = net.ListenPacket("udp4", ":9") })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s.Do(t, func() { client, err = net.Dial("udp4", to.addresses()[0]+":9") })
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range floodSize {
			client.Write(make([]byte, 1000))
			time.Sleep(100 * time.Microsecond)
		}
	}()
	for buf := make([]byte, 2000); ; {
		server.SetReadDeadline(time.Now().Add(time.Second))
		if _, _, err := server.ReadFrom(buf); err == nil {
			n++
			continue
		}
		select {
		case <-sent:
			return n
		default: // a busy machine still sends
		}
	}
}

// TestHostLocal: an IPAM plugin gives the addresses, is asked for what it gave when
// the agent refuses, and has nothing left in the end.
func TestHostLocal(t *testing.T) {
	w := newWorld(t, "a", "b")
	ipam := func(subnet, gateway string) string {
		return fmt.Sprintf(`, "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q, "gateway": %q, "rangeStart": "10.10.0.64"}]]}`,
			w.path("ipam"), subnet, gateway)
	}
	w.setConf(ipam("10.10.0.0/24", "10.10.0.1"))
	w.start()
	a, b := w.sandbox("a"), w.sandbox("b")
	ra, rb := w.addSandbox(a), w.addSandbox(b)
	if again := w.addSandbox(a); !again.IPs[0].Address.IP.Equal(ra.IPs[0].Address.IP) || len(ra.IPs) != 1 || ra.IPs[0].Address.IP.String() != "10.10.0.64" {
		t.Errorf("%+v, then %+v", ra.IPs, again.IPs)
	}
	if err := a.ping(rb.IPs[0].Address.IP.String()); err != nil {
		t.Error(err)
	}
	w.must("status", a)
	w.must("check", a)
	w.kill()
	w.must("del", a)
	w.start()
	w.must("gc", b) // with no valid attachment
	w.wantNothing()
	w.setConf(ipam("10.10.0.0/16", "10.10.0.254"))
	if out, err := w.cnitool("add", a); err == nil || !strings.Contains(string(out), "gateway") {
		t.Errorf("another gateway: %v, %s", err, out)
	}
	files, err := filepath.Glob(w.path("ipam/antrail/10.*"))
	if err != nil || len(files) > 0 {
		t.Errorf("host-local has %v, %v", files, err)
	}
}
