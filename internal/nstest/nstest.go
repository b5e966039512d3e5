// Package nstest gives a test network namespaces of its own, with veth pairs between them, so
// that it never touches the machine's interfaces.
//
// A namespace has a name under /run/netns, where ip and nsenter find it. The name has the process
// id of the test. The namespace is removed when the test or its process ends.
//
// A namespace is an attribute of a thread, so Do runs its function on the calling goroutine,
// locked to its thread. A goroutine started inside Do is not in the namespace; a socket opened
// inside Do stays in it. IPv6 is off in these namespaces, so that tests do not count packets of
// neighbour discovery.
// among the packets a test counts.
package nstest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/reaptest"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const runDir = "/run/netns"

// own is the beginning of the names of this process's namespaces.
func own() string { return fmt.Sprintf("antrail-test-%d-", os.Getpid()) }

var serial atomic.Uint32

// Namespace is one network namespace, for one goroutine at a time.
type Namespace struct {
	// Name is its name under /run/netns.
	Name  string
	ns    netns.NsHandle
	links *netlink.Handle
}

// New makes a namespace with lo up and IPv6 off. The test's end removes it. Without root the test
// is skipped.
func New(t testing.TB) *Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if err := reaptest.Namespaces(own()); err != nil {
		t.Fatal(err)
	}
	n := &Namespace{Name: fmt.Sprintf("%s%d", own(), serial.Add(1))}
	var err error
	if n.ns, err = create(n.Name); err != nil {
		t.Fatalf("namespace %s: %v", n.Name, err)
	}
	t.Cleanup(n.remove)
	if n.links, err = netlink.NewHandleAt(n.ns, unix.NETLINK_ROUTE); err != nil {
		t.Fatalf("netlink in %s: %v", n.Name, err)
	}
	n.Sysctl(t, "net/ipv4/ip_forward", "0") // a new namespace inherits the machine's value
	n.Sysctl(t, "net/ipv6/conf/all/disable_ipv6", "1")
	n.Sysctl(t, "net/ipv6/conf/default/disable_ipv6", "1")
	n.SetUp(t, "lo")
	return n
}

// create makes a named namespace without moving the caller into it.
func create(name string) (netns.NsHandle, error) {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return netns.None(), err
	}
	defer home.Close()
	defer returnHome(home)
	return netns.NewNamed(name)
}

// returnHome returns the thread to its own namespace. If that fails, the thread stays locked, and
// ends with its goroutine.
func returnHome(home netns.NsHandle) {
	if netns.Set(home) == nil {
		runtime.UnlockOSThread()
	}
}

func (n *Namespace) remove() {
	if n.links != nil {
		n.links.Close()
	}
	n.ns.Close()
	netns.DeleteNamed(n.Name)
}

// Remove deletes the namespace before the test ends, as when a pod is deleted. Its links vanish
// soon after, not at once.
func (n *Namespace) Remove() { n.remove() }

// Do runs f in the namespace, on the calling goroutine, so f may end the test.
func (n *Namespace) Do(t testing.TB, f func()) {
	t.Helper()
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		t.Fatalf("own namespace: %v", err)
	}
	defer home.Close()
	defer returnHome(home)
	if err := netns.Set(n.ns); err != nil {
		t.Fatalf("enter %s: %v", n.Name, err)
	}
	f()
}

// FD is the namespace's file descriptor, valid until the test ends.
func (n *Namespace) FD() int { return int(n.ns) }

// Path is the namespace's file, as nsenter and netns.GetFromPath want it.
func (n *Namespace) Path() string { return filepath.Join(runDir, n.Name) }

// Links is a netlink handle that acts in the namespace.
func (n *Namespace) Links() *netlink.Handle { return n.links }

// Command is exec.Command in the namespace. It needs nsenter.
func (n *Namespace) Command(name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=" + n.Path(), name}, args...)...)
}

// Sysctl writes a value; path is below /proc/sys, in slashes.
func (n *Namespace) Sysctl(t testing.TB, path, value string) {
	t.Helper()
	n.Do(t, func() {
		if err := os.WriteFile("/proc/sys/"+path, []byte(value), 0o644); err != nil {
			t.Fatalf("sysctl in %s: %v", n.Name, err)
		}
	})
}

// Link finds a link of the namespace by name.
func (n *Namespace) Link(t testing.TB, name string) netlink.Link {
	t.Helper()
	l, err := n.links.LinkByName(name)
	if err != nil {
		t.Fatalf("link %s in %s: %v", name, n.Name, err)
	}
	return l
}

// SetUp sets a link up.
func (n *Namespace) SetUp(t testing.TB, name string) {
	t.Helper()
	if err := n.links.LinkSetUp(n.Link(t, name)); err != nil {
		t.Fatalf("set %s up in %s: %v", name, n.Name, err)
	}
}

// AddAddress gives a link an address in CIDR notation.
func (n *Namespace) AddAddress(t testing.TB, name, cidr string) {
	t.Helper()
	a, err := netlink.ParseAddr(cidr)
	if err != nil {
		t.Fatal(err)
	}
	if a.IP.To4() == nil {
		n.Sysctl(t, "net/ipv6/conf/"+name+"/disable_ipv6", "0")
		a.Flags = unix.IFA_F_NODAD // usable at once
	}
	if err := n.links.AddrAdd(n.Link(t, name), a); err != nil {
		t.Fatalf("address %s on %s in %s: %v", cidr, name, n.Name, err)
	}
	if a.IP.To4() == nil && n.Link(t, name).Attrs().OperState == netlink.OperUp {
		n.awaitLocalRoute(t, a.IP)
	}
}

// awaitLocalRoute waits until packets to an IPv6 address arrive. The kernel makes the address's
// route a moment after the address, and drops packets to it until then.
func (n *Namespace) awaitLocalRoute(t testing.TB, ip net.IP) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		routes, err := n.links.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Table: unix.RT_TABLE_LOCAL}, netlink.RT_FILTER_TABLE)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Dst != nil && r.Dst.IP.Equal(ip) }) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no route to %v in %s", ip, n.Name)
		}
	}
}

// AddNeighbour makes ip reachable at mac over a link, without ARP.
func (n *Namespace) AddNeighbour(t testing.TB, name, ip string, mac net.HardwareAddr) {
	t.Helper()
	err := n.links.NeighSet(&netlink.Neigh{
		LinkIndex:    n.Link(t, name).Attrs().Index,
		State:        netlink.NUD_PERMANENT,
		IP:           net.ParseIP(ip),
		HardwareAddr: mac,
	})
	if err != nil {
		t.Fatalf("neighbour %s on %s in %s: %v", ip, name, n.Name, err)
	}
}

// AddVeth makes a veth pair with one end in a and one in b, both up. Each end has one queue each
// way and a fixed MAC (see MAC).
func AddVeth(t testing.TB, a *Namespace, aName string, b *Namespace, bName string) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = aName
	attrs.NumTxQueues, attrs.NumRxQueues = 1, 1
	attrs.HardwareAddr = MAC(aName)
	err := a.links.LinkAdd(&netlink.Veth{
		LinkAttrs:        attrs,
		PeerName:         bName,
		PeerHardwareAddr: MAC(bName),
		PeerNamespace:    netlink.NsFd(b.FD()),
	})
	if err != nil {
		t.Fatalf("veth %s in %s to %s in %s: %v", aName, a.Name, bName, b.Name, err)
	}
	a.SetUp(t, aName)
	b.SetUp(t, bName)
	a.awaitCarrier(t, aName)
	b.awaitCarrier(t, bName)
}

// awaitCarrier waits until the kernel reports a carrier on a link. An IPv6 address that is added
// before that never gets its route.
func (n *Namespace) awaitCarrier(t testing.TB, name string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); n.Link(t, name).Attrs().OperState != netlink.OperUp; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s in %s has no carrier", name, n.Name)
		}
	}
}

// MAC is the address that AddVeth gives to an end of this name: locally
// administered, the name's last four bytes at its end.
func MAC(name string) net.HardwareAddr {
	mac := net.HardwareAddr{0x02, 0, 0, 0, 0, 0}
	if len(name) > 4 {
		name = name[len(name)-4:]
	}
	copy(mac[2:], name)
	return mac
}
