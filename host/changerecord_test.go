package host

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/internal/sysctl"
	"github.com/vishvananda/netlink"
)

// underlayNode is a Node with a gateway and an underlay address, and a configuration with a
// record in a directory of its own.
func underlayNode(t *testing.T) (*nstest.Namespace, Config, string) {
	t.Helper()
	n := node(t)
	n.AddAddress(t, "lo", "192.168.77.102/32")
	n.SetUp(t, "lo")
	dir := filepath.Join(t.TempDir(), "antrail")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := config()
	c.Record = filepath.Join(dir, "node.record")
	c.Files = []string{filepath.Join(dir, "ct.arena"), filepath.Join(dir, "never-made")}
	if err := os.WriteFile(c.Files[0], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return n, c, dir
}

// killGateway does what the kernel does when the process with the tap dies.
func killGateway(t *testing.T) {
	t.Helper()
	link, err := netlink.LinkByName(gateway)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkDel(link); err != nil {
		t.Fatal(err)
	}
}

// remains is the state without the parts on the gateway's link.
func remains(t *testing.T) string {
	t.Helper()
	const gone = "conf/" + gateway + "/"
	var b strings.Builder
	for line := range strings.Lines(state(t)) {
		if !strings.Contains(line, gone) {
			b.WriteString(line)
		}
	}
	return b.String()
}

var egressSide = &Side{Egresses: []Egress{{netip.MustParseAddr("192.168.77.150"), 1}}}

func up(t *testing.T, c Config) *Host {
	t.Helper()
	h, err := Up(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func set(t *testing.T, h *Host, s *Side) {
	t.Helper()
	if err := h.Set(s); err != nil {
		t.Fatal(err)
	}
}

// TestCleanAfterKill: Clean removes everything that a killed process left on the Node.
func TestCleanAfterKill(t *testing.T) {
	n, c, dir := underlayNode(t)
	n.Do(t, func() {
		before := remains(t)
		set(t, up(t, c), egressSide)
		killGateway(t)
		if now := remains(t); now == before || !strings.Contains(now, "192.168.77.150") {
			t.Fatalf("nothing was changed:\n%s", now)
		}
		var told []string
		if err := Clean(c.Record, func(what string) { told = append(told, what) }); err != nil {
			t.Fatal(err)
		}
		if after := remains(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		text := strings.Join(told, "\n")
		for _, want := range []string{"removed nftables table inet antrail", "removed address 192.168.77.150/32 on lo",
			"set /proc/sys/net/ipv4/ip_forward back to 0", "removed " + c.Files[0], "removed " + dir} {
			if !strings.Contains(text, want) {
				t.Errorf("it did not tell %q:\n%s", want, text)
			}
		}
		if strings.Contains(text, "never-made") {
			t.Errorf("it told of a file that was not there:\n%s", text)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", dir, err)
		}
		if err := Clean(c.Record, func(what string) { t.Errorf("once more: %s", what) }); err != nil {
			t.Error(err)
		}
	})
}

// TestTakeOver: an agent after a killed one undoes that one's changes, and removes an
// address that is no longer wanted.
func TestTakeOver(t *testing.T) {
	n, c, _ := underlayNode(t)
	n.Do(t, func() {
		before := remains(t)
		set(t, up(t, c), egressSide) // without Down
		second := up(t, c)
		set(t, second, egressSide)
		if !strings.Contains(remains(t), "192.168.77.150") {
			t.Error("the address went with the takeover")
		}
		third := up(t, c)
		set(t, third, &Side{})
		if strings.Contains(remains(t), "192.168.77.150") {
			t.Error("the address stays although nobody asks for it")
		}
		if err := third.Down(); err != nil {
			t.Fatal(err)
		}
		if after := remains(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		r, err := loadRecord(c.Record)
		if err != nil || len(r.Sysctls) > 0 || len(r.Addresses) > 0 || len(r.Files) == 0 {
			t.Errorf("the record after Down: %+v, %v", r, err)
		}
	})
}

// TestCleanLeavesWhatOthersChanged: a sysctl that another program changed since stays.
func TestCleanLeavesWhatOthersChanged(t *testing.T) {
	n, c, _ := underlayNode(t)
	n.Do(t, func() {
		up(t, c)
		const file = "/proc/sys/net/ipv4/conf/" + gateway + "/rp_filter"
		if err := sysctl.Write(file, "1"); err != nil {
			t.Fatal(err)
		}
		told := ""
		if err := Clean(c.Record, func(what string) { told += what + "\n" }); err != nil {
			t.Fatal(err)
		}
		if v, err := sysctl.Read(file); err != nil || v != "1" {
			t.Errorf("rp_filter is %s, %v; want 1", v, err)
		}
		if want := "left " + file + " at 1: it was 0 before, and was set to 2"; !strings.Contains(told, want) {
			t.Errorf("no %q in\n%s", want, told)
		}
	})
}

// TestRecordOfAnotherBoot: values from before a reboot are not written.
func TestRecordOfAnotherBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.record")
	os.WriteFile(path, []byte(`{"boot": "another", "sysctls": [{"file": "/proc/sys/net/ipv4/ip_forward", "before": "0", "set": "1"}], "files": ["/no/such/file"]}`), 0o600)
	r, err := loadRecord(path)
	if err != nil || len(r.Sysctls) > 0 || len(r.Files) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBadRecords: a record that Up cannot have written is refused, with the file's name.
func TestBadRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.record")
	for text, want := range map[string]string{
		`{"boot": `: "unexpected end of JSON input",
		`{"sysctls": [{"file": "/etc/passwd", "before": "0"}]}`:                   `"/etc/passwd" is not a sysctl below /proc/sys/net/`,
		`{"sysctls": [{"file": "/proc/sys/net/../kernel/panic", "before": "0"}]}`: "is not a sysctl below /proc/sys/net/",
		`{"addresses": [{"link": "", "address": "10.0.0.1/32"}]}`:                 "not a valid address, or no link",
		`{"files": ["ct.arena"]}`:                                                 `"ct.arena" is not an absolute path`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Clean(path, func(what string) { t.Errorf("%s: %s", text, what) }); err == nil ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
