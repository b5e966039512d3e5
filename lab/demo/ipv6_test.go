package demo

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/raw"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestIPv6Underlay: a tunnel over IPv6 carries pods of both families.
func TestIPv6Underlay(t *testing.T) {
	dir := exampleAnd(t, nil, "")
	if err := reachOverIPv6(dir); err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(upWith(t, lab.Options{Manifests: dir, IPv6Underlay: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	across := connect("client-a", "client-b:5001", "client-b", "client-a:5001")
	for name, c := range map[string]check{
		"IPv4": {"", across}, "IPv6": {"", over6(across)},
		"IPv4 on the wire": {"", underlay}, "IPv6 on the wire": {"", over6(underlay)},
		"IPv6 Service": {"", over6(clusterIP)}, "IPv4 at once": {"", bothDirections},
	} {
		seen, err := c.run(t.Context(), w)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Log(name, seen)
	}
}

// TestPodDetectsDuplicates sets client-a's address again, with the kernel's duplicate
// address detection. The solicitation reaches the other pods, no host answers, and the
// address works.
func TestPodDetectsDuplicates(t *testing.T) {
	w := plainLab(t).bare().ipv6()
	s, err := w.raw("web-a", "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	own := w.addresses["client-a"]
	if err := w.lab.In("client-a", func() error { return readdress(own.AsSlice()) }); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, "a solicitation without source for "+own.String(), func(f []byte) bool {
		const source, target = 14 + 8, 14 + 40 + 8
		return len(f) >= target+16 && f[12] == 0x86 && f[13] == 0xdd && f[14+40] == 135 &&
			bytes.Equal(f[source:source+16], net.IPv6unspecified) && bytes.Equal(f[target:target+16], own.AsSlice())
	})
	waitDetected(t, w, own.String())
	for _, to := range []string{"web-a", "client-b"} {
		if _, err := w.ping("client-a", to, waitAtMost); err != nil {
			t.Error(err)
		}
	}
}

// readdress takes an address off eth0 and puts it on again. The route goes with
// the address and comes back with it.
func readdress(own net.IP) error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if !a.IP.Equal(own) {
			continue
		}
		if err := netlink.AddrDel(link, &a); err != nil {
			return err
		}
		return netlink.AddrAdd(link, &netlink.Addr{IPNet: a.IPNet})
	}
	return fmt.Errorf("eth0 has no %s", own)
}

// waitFor waits for a frame.
func waitFor(t *testing.T, s *raw.Socket, what string, is func([]byte) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		f, err := s.Receive(time.Until(deadline))
		if err != nil || f == nil {
			t.Fatalf("%s did not come: %v", what, err)
		}
		if is(f) {
			return
		}
	}
}

// waitDetected waits until client-a may use an address.
func waitDetected(t *testing.T, w *world, own string) {
	t.Helper()
	var last []string
	for range 1000 {
		last = nil
		err := w.lab.In("client-a", func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			addrs, err := netlink.AddrList(link, netlink.FAMILY_V6)
			for _, a := range addrs {
				if a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 {
					last = append(last, a.IP.String())
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(last, own) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("client-a may use %v, not %s", last, own)
}
