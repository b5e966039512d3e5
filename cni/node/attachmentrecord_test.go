package node

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/containernetworking/cni/pkg/types"
	"golang.org/x/sys/unix"
)

// TestRecordOfAnotherBoot: a record of another boot counts as empty. One that cannot be
// read is an error that names the file.
func TestRecordOfAnotherBoot(t *testing.T) {
	r := newRig(t)
	r.add(request(nstest.New(t), "web", "eth0"))
	text, err := os.ReadFile(r.config.Record)
	r.must(err)
	other := strings.Replace(string(text), `"boot": "`, `"boot": "x`, 1)
	r.must(os.WriteFile(r.config.Record, []byte(other), 0o600))
	was, err := openRecord(r.config.Record)
	if err != nil || len(was.all()) != 0 {
		t.Errorf("%v, %v", was.all(), err)
	}
	r.must(os.WriteFile(r.config.Record, text[:len(text)/2], 0o600))
	if _, err := openRecord(r.config.Record); err == nil || !strings.Contains(err.Error(), r.config.Record) {
		t.Errorf("a torn record: %v", err)
	}
}

// TestDoubt: the next agent keeps an attachment that it cannot check, and removes one whose
// sandbox's file is gone.
func TestDoubt(t *testing.T) {
	r := newRig(t)
	file := t.TempDir() + "/box"
	r.must(os.WriteFile(file, nil, 0o600))
	r.must(unix.Mount(nstest.New(t).Path(), file, "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(file, unix.MNT_DETACH) })
	q := request(nstest.New(t), "web", "eth0")
	q.Netns = file
	r.add(q)
	r.must(unix.Unmount(file, unix.MNT_DETACH))
	r.must(os.Remove(file))
	r.must(os.Symlink(file, file)) // opening it is ELOOP
	r.restart()
	r.wantConsistent(1)
	_, err := r.Add(t.Context(), q)
	r.code("ADD in doubt", err, types.ErrIOFailure)
	r.must(os.Remove(file))
	r.restart()
	r.wantConsistent(0)
}

// TestClean: Clean removes links and record without an agent.
func TestClean(t *testing.T) {
	r := newRig(t)
	box := nstest.New(t)
	r.add(request(box, "web", "eth0"))
	var told []string
	r.ns.Do(t, func() {
		r.must(Clean(r.config.Record, func(what string) { told = append(told, what) }))
		r.must(Clean(r.config.Record, func(what string) { told = append(told, what) }))
	})
	if _, err := os.Stat(r.config.Record); !os.IsNotExist(err) || len(told) != 2 || len(r.veths()) != 0 {
		t.Errorf("record: %v, told %q, links %v", err, told, r.veths())
	}
	r.wantEmpty(box)
}

// TestPick: pick goes around a range, skips addresses in use, and ends.
func TestPick(t *testing.T) {
	for _, c := range []struct{ cidr, after, taken, want string }{
		{"10.10.0.0/24", "10.10.0.0", "10.10.0.1", "10.10.0.2"},
		{"10.10.0.0/24", "10.10.0.254", "10.10.0.1", "10.10.0.2"},
		{"10.10.0.0/24", "10.10.0.9", "10.10.0.10 10.10.0.11", "10.10.0.12"},
		{"10.10.0.0/30", "10.10.0.0", "10.10.0.1 10.10.0.2", ""},
		{"10.10.0.0/31", "10.10.0.0", "10.10.0.0", "10.10.0.1"},
		{"10.10.0.7/32", "10.10.0.7", "", "10.10.0.7"},
		{"255.255.255.0/24", "255.255.255.253", "", "255.255.255.254"},
		{"255.255.255.0/24", "255.255.255.254", "", "255.255.255.1"},
		{"fd00::/64", "fd00::", "fd00::1", "fd00::2"},
		{"fd00::/64", "fd00::ffff:ffff:ffff:ffff", "", "fd00::1"},
	} {
		taken := map[netip.Addr]bool{}
		for _, a := range strings.Fields(c.taken) {
			taken[netip.MustParseAddr(a)] = true
		}
		got, ok := pick(netip.MustParsePrefix(c.cidr), netip.MustParseAddr(c.after), taken)
		if text := map[bool]string{true: got.String()}[ok]; text != c.want {
			t.Errorf("pick(%s, %s, %s) is %q, want %q", c.cidr, c.after, c.taken, text, c.want)
		}
	}
}

// TestNames: a link's name fits the kernel, begins like the Pod's name, and differs between
// interfaces.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, pod := range []string{"web", "web-6f7d9c8b5-x2x7q", "a.b.c.d.e", "x", "abcde-fgh"} {
		for _, box := range []string{"1", "2"} {
			for _, ifname := range []string{"eth0", "net1"} {
				for salt := range 3 {
					name := nameOf(pod, cni.Attachment{Container: box, Interface: ifname}, salt)
					if len(name) > maxName || seen[name] || strings.Contains(name, ".") || strings.Contains(name, "--") || name[0] != pod[0] {
						t.Errorf("%s for %s/%s of %s", name, box, ifname, pod)
					}
					seen[name] = true
				}
			}
		}
	}
}

// FuzzRecord: from any file that is accepted, no address or port number is given twice.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"boot":"b","attachments":[{"containerID":"c","ifname":"eth0","netns":"/n","ips":["10.0.0.2/24"],"mac":"0a:58:0a:00:00:02","link":"web-abcdefgh","ofPort":4096}]}`))
	f.Add([]byte(`{"lastPort":4294967295}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseContent(text)
		if err != nil {
			return
		}
		ips, ports, links := map[netip.Addr]bool{}, map[uint32]bool{}, map[string]bool{}
		for _, a := range c.Attachments {
			if ports[a.OFPort] || links[a.Link] || len(a.Link) > maxName || a.Link == "" {
				t.Errorf("%+v", a)
			}
			ports[a.OFPort], links[a.Link] = true, true
			for _, ip := range a.addrs() {
				if ips[ip] || !ip.IsValid() {
					t.Errorf("%v in %+v", ip, a)
				}
				ips[ip] = true
			}
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
		if no, err := c.nextPort(nil); err != nil || ports[no] || no < firstPort || no > lastPort {
			t.Errorf("port %d, %v", no, err)
		}
	})
}
