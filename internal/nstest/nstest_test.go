package nstest

import (
	"net"
	"os"
	"testing"
)

// A UDP datagram crosses the pair, and the caller is back home afterwards.
func TestVethBetweenNamespaces(t *testing.T) {
	home, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	a, b := New(t), New(t)
	AddVeth(t, a, "left", b, "right")
	a.AddAddress(t, "left", "10.9.0.1/24")
	b.AddAddress(t, "right", "10.9.0.2/24")
	b.AddNeighbour(t, "right", "10.9.0.1", MAC("left"))

	var server net.PacketConn
	a.Do(t, func() { server, err = net.ListenPacket("udp4", "10.9.0.1:7") })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var client net.Conn
	b.Do(t, func() { client, err = net.Dial("udp4", "10.9.0.1:7") })
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	n, from, err := server.ReadFrom(buf)
	if err != nil || string(buf[:n]) != "hello" {
		t.Fatalf("got %q, %v", buf[:n], err)
	}
	if got := from.(*net.UDPAddr).IP.String(); got != "10.9.0.2" {
		t.Errorf("sender is %s, want 10.9.0.2", got)
	}
	if now, _ := os.Readlink("/proc/thread-self/ns/net"); now != home {
		t.Errorf("left in %s, came from %s", now, home)
	}
}

// A namespace is gone by name when its test is over.
func TestNamespacesAreRemoved(t *testing.T) {
	var path string
	t.Run("inner", func(t *testing.T) { path = New(t).Path() })
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}
