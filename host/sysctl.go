package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// setSysctls switches on what the pipeline needs of the kernel.
//
// rp_filter: the kernel takes the larger value of conf/all and the link's own,
// so 2 (loose) on the gateway is enough: a reply to a pod may come back by
// another way than the gateway.
func (h *Host) setSysctls(c *Config) error {
	for _, s := range []struct{ path, value string }{
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv4/conf/" + c.Gateway + "/arp_announce", "1"},
		{"net/ipv4/conf/" + c.Gateway + "/rp_filter", "2"},
	} {
		if err := h.setSysctl(s.path, s.value); err != nil {
			return err
		}
	}
	return nil
}

// setSysctl writes a value below /proc/sys and remembers the one before. A
// value that is right already is left alone, now and on Down.
func (h *Host) setSysctl(path, value string) error {
	file := filepath.Join("/proc/sys", path)
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("sysctl: %w", err)
	}
	before := strings.TrimSpace(string(b))
	if before == value {
		return nil
	}
	if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
		return fmt.Errorf("sysctl: %w", err)
	}
	h.undoLater("sysctl "+path, func() error { return os.WriteFile(file, []byte(before), 0o644) })
	return nil
}
