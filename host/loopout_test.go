package host

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// TestCheckLoop: an error names each sysctl that would break loop mode. A Node with the
// right values passes.
func TestCheckLoop(t *testing.T) {
	n := nstest.New(t)
	nstest.AddVeth(t, n, "gw", n, "other")
	for _, s := range []struct{ file, value, want string }{
		{"conf/all/rp_filter", "0", "net.ipv4.conf.gw.accept_local is 0"},
		{"conf/gw/accept_local", "1", ""},
		{"conf/gw/rp_filter", "1", "net.ipv4.conf.gw.rp_filter is 1"},
		{"conf/all/rp_filter", "2", ""},
		{"ip_local_port_range", "20000 30000", "set net.ipv4.ip_local_reserved_ports=10000-20000"},
		{"ip_local_reserved_ports", "9000-20001", ""},
		{"ip_local_reserved_ports", "12000-20000", "set net.ipv4.ip_local_reserved_ports=10000-20000"},
		{"ip_local_port_range", "20001 30000", ""},
	} {
		n.Sysctl(t, "net/ipv4/"+s.file, s.value)
		var err error
		n.Do(t, func() { err = CheckLoop("gw", 10000, 20000) })
		if s.want == "" && err != nil || s.want != "" && (err == nil || !strings.Contains(err.Error(), s.want)) {
			t.Errorf("with %s=%s: %v, want %q", s.file, s.value, err, s.want)
		}
	}
}
