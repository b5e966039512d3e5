//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// keepEnv makes the test binary call Keep and print what it has then.
const keepEnv = "CONFINE_TEST_KEEP"

// keepAndTell prints the capability sets of each thread, without doubles.
func keepAndTell() {
	left, err := Keep(1<<unix.CAP_NET_RAW|1<<unix.CAP_BPF, "/proc/self/exe")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	c := exec.Command("sh", "-c", fmt.Sprintf("grep -h ^Cap /proc/%d/task/*/status | sort -u; grep ^Cap /proc/self/status", os.Getpid()))
	out, err := c.CombinedOutput()
	fmt.Printf("left %x, %v\n%s", left, err, out)
	os.Exit(0)
}

// TestKeep: no thread keeps others, and no child gets others. Without CAP_SETPCAP a process
// keeps all.
func TestKeep(t *testing.T) {
	needsRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const kept = "left 0, <nil>\nCapAmb: 0000000000000000\nCapBnd: 0000008000002000\nCapEff: 0000008000002000\nCapInh: 0000000000000000\nCapPrm: 0000008000002000\n" +
		"CapInh: 0000000000000000\nCapPrm: 0000008000002000\nCapEff: 0000008000002000\nCapBnd: 0000008000002000\nCapAmb: 0000000000000000\n"
	ambient := strings.NewReplacer("CapInh: 0000000000000000", "CapInh: 0000000000002000", "CapAmb: 0000000000000000", "CapAmb: 0000000000002000").Replace(kept)
	for _, c := range []struct {
		as   string // options of setpriv(1)
		want string
	}{
		{"", kept},
		{"--inh-caps=+kill,+chown", kept},
		{"--inh-caps=+kill,+net_raw --ambient-caps=+kill,+net_raw", ambient},
		{"--bounding-set=-all,+net_raw,+bpf", kept},
		{"--bounding-set=-all,+net_raw,+bpf,+kill", "left 20, <nil>\nCapAmb: 0000000000000000\nCapBnd: 0000008000002020\n"},
		{"--bounding-set=-all,+net_raw --reuid=65534 --inh-caps=-all,+net_raw --ambient-caps=+net_raw",
			strings.ReplaceAll(ambient, "0000008000002000", "0000000000002000")},
	} {
		cmd := exec.Command("setpriv", append(strings.Fields(c.as), self)...)
		cmd.Env = append(os.Environ(), keepEnv+"=1")
		out, err := cmd.CombinedOutput()
		if got := strings.ReplaceAll(string(out), "\t", " "); err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("setpriv %s: %v\n%s\nwant\n%s", c.as, err, got, c.want)
		}
	}
}
