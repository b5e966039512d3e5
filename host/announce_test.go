package host

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// TestEgressIsAnnounced: an address is announced when it comes and when it is restored, in
// each family.
func TestEgressIsAnnounced(t *testing.T) {
	n, far := node(t), nstest.New(t)
	nstest.AddVeth(t, n, "eth0", far, "eth0")
	for _, ns := range []*nstest.Namespace{n, far} {
		ns.Sysctl(t, "net/ipv6/conf/eth0/disable_ipv6", "0")
	}
	n.AddAddress(t, "eth0", "192.168.77.102/24")
	var s int
	far.SetUp(t, "eth0")
	far.Do(t, func() { s = capture(t) })
	n.Do(t, func() {
		h, err := Up(config())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Down()
		v4, v6 := netip.MustParseAddr("192.168.77.112"), netip.MustParseAddr("fd77::112")
		mac := nstestMAC(t)
		for _, put := range []func() error{
			func() error { return h.Set(&Side{Egresses: []Egress{{v4, 1}, {v6, 2}}}) },
			func() error {
				shell(t, "ip address del 192.168.77.112/32 dev eth0", "ip address del fd77::112/128 dev eth0")
				_, err := h.Reconcile()
				return err
			},
		} {
			if err := put(); err != nil {
				t.Fatal(err)
			}
			await(t, s, func(f []byte) bool { return announces4(f, mac, v4) })
			await(t, s, func(f []byte) bool { return announces6(f, mac, v6) })
		}
	})
}

// nstestMAC is eth0's MAC address.
func nstestMAC(t *testing.T) [6]byte {
	t.Helper()
	at, err := linkWith(netip.MustParseAddr("192.168.77.102"))
	if err != nil {
		t.Fatal(err)
	}
	return [6]byte(at.Attrs().HardwareAddr)
}

// capture receives every frame of the namespace.
func capture(t *testing.T) int {
	t.Helper()
	const all = unix.ETH_P_ALL << 8 // in network order
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s) })
	if err := unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}); err != nil {
		t.Fatal(err)
	}
	return s
}

// await reads frames until wanted is true for one.
func await(t *testing.T, s int, wanted func([]byte) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		frame := make([]byte, 2048)
		n, _, err := unix.Recvfrom(s, frame, 0)
		if err != nil {
			t.Fatalf("no such frame: %v", err)
		}
		if wanted(frame[:n]) {
			return
		}
	}
	t.Fatal("no such frame")
}

func announces4(f []byte, mac [6]byte, a netip.Addr) bool {
	e := packet.Ethernet(f)
	if !e.Valid() || e.Type() != packet.EtherTypeARP {
		return false
	}
	arp := packet.ARP(f[packet.EthernetLen:])
	return arp.Valid() && e.Dst() == everyone && arp.Op() == packet.ARPRequest && arp.SHA() == mac && arp.SPA() == a && arp.TPA() == a
}

// announces6 checks the checksum and the override flag.
func announces6(f []byte, mac [6]byte, a netip.Addr) bool {
	e := packet.Ethernet(f)
	if !e.Valid() || e.Type() != packet.EtherTypeIPv6 {
		return false
	}
	ip := packet.IPv6(f[packet.EthernetLen:])
	if !ip.Valid() || ip.NextHeader() != packet.ProtoICMPv6 || ip.Src() != a || ip.HopLimit() != 255 {
		return false
	}
	nd := ip.Payload()
	want := advertisement(mac, a)
	return packet.Sum(nd, ip.PseudoSum(packet.ProtoICMPv6, len(nd))) == 0xffff &&
		bytes.Equal(nd[:2], want[:2]) && bytes.Equal(nd[4:], want[4:])
}
