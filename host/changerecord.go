package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antrail/antrail/internal/sysctl"
	"github.com/vishvananda/netlink"
)

// A record of what was changed on the Node and does not go with the process: the
// values that sysctls had, addresses of Egresses, addresses and routes of a card, files. Each is written down
// before it is changed, so that who is killed at any instant leaves a record of
// all it did. The next Up takes it over, as if it had made those changes itself;
// Clean takes them back without an agent (clean.go).
//
// It needs to outlive the process and not the machine: what it tells of is gone
// after a boot. A record of another boot is nobody's, but for its files.

// record is the file's content, as JSON.
type record struct {
	Boot      string    `json:"boot"`
	Sysctls   []changed `json:"sysctls,omitempty"`   // in the order of the changes
	Addresses []placed  `json:"addresses,omitempty"` // likewise
	// Card has addresses and routes of the card that the switch owns (movedcard.go); nil for none.
	Card  *movedCard `json:"card,omitempty"`
	Files []string   `json:"files,omitempty"`

	path string // "": kept nowhere
}

// changed is a sysctl that was set. Set is "" where the kernel changed it because
// of another.
type changed struct {
	File   string `json:"file"`
	Before string `json:"before"`
	Set    string `json:"set,omitempty"`
}

// placed is an address that was put on a link.
type placed struct {
	Link    string       `json:"link"`
	Address netip.Prefix `json:"address"`
}

const bootID = "/proc/sys/kernel/random/boot_id"

// loadRecord reads a record; one that is not there is empty, and so is one of
// another boot. One that cannot be read is an error: it may be the only one who
// knows what the Node was like.
func loadRecord(path string) (*record, error) {
	boot, err := sysctl.Read(bootID)
	if err != nil {
		return nil, err
	}
	r := &record{Boot: boot, path: path}
	if path == "" {
		return r, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w; it tells what was changed on the Node: mend it, or remove it to forget that", path, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Boot != boot {
		r.Boot, r.Sysctls, r.Addresses, r.Card = boot, nil, nil, nil
	}
	return r, nil
}

// check refuses a record that would write elsewhere than Up does.
func (r *record) check() error {
	for _, s := range r.Sysctls {
		if filepath.Clean(s.File) != s.File || !strings.HasPrefix(s.File, "/proc/sys/net/") {
			return fmt.Errorf("%q is no sysctl of the network", s.File)
		}
	}
	for _, a := range r.Addresses {
		if !a.Address.IsValid() || a.Link == "" {
			return fmt.Errorf("%v on %q is no address on a link", a.Address, a.Link)
		}
	}
	if r.Card != nil {
		if err := r.Card.check(); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		if !filepath.IsAbs(f) {
			return fmt.Errorf("%q is no file with its whole path", f)
		}
	}
	return nil
}

// save writes the record so that a reader sees the old one or the new one. One
// that tells nothing is removed.
func (r *record) save() error {
	if r.path == "" {
		return nil
	}
	if len(r.Sysctls)+len(r.Addresses)+len(r.Files) == 0 && r.Card == nil {
		if err := os.Remove(r.path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	fresh := r.path + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, r.path)
}

// noteChange writes down what is about to change.
func (r *record) noteChange(change func()) error {
	change()
	if err := r.save(); err != nil {
		return fmt.Errorf("record of changes: %w", err)
	}
	return nil
}

// hasSysctl says whether a sysctl was changed already.
func (r *record) hasSysctl(file string) bool {
	return slices.ContainsFunc(r.Sysctls, func(s changed) bool { return s.File == file })
}

// addAddress notes an address that is about to be put on a link.
func (r *record) addAddress(p placed) error {
	return r.noteChange(func() {
		if !slices.Contains(r.Addresses, p) {
			r.Addresses = append(r.Addresses, p)
		}
	})
}

// dropAddress forgets an address that was taken back.
func (r *record) dropAddress(p placed) error {
	return r.noteChange(func() {
		r.Addresses = slices.DeleteFunc(r.Addresses, func(o placed) bool { return o == p })
	})
}

// remove takes an address from its link.
func (p placed) remove() error {
	link, err := netlink.LinkByName(p.Link)
	if err != nil {
		return err
	}
	return netlink.AddrDel(link, &netlink.Addr{IPNet: ipNet(p.Address)})
}

// takeOver makes what a killed process changed ours: Down takes it back, and an
// address that nobody wants any more goes with the first Set.
func (h *Host) takeOver() {
	for _, s := range h.record.Sysctls {
		h.undoLater("sysctl "+s.File, func() error { return sysctl.Write(s.File, s.Before) })
	}
	for _, p := range h.record.Addresses {
		h.side = append(h.side, h.placedThing(p))
	}
	if m := h.record.Card; m != nil {
		h.undoLater("move of "+m.Link, h.record.returnCard)
	}
}

// placedThing is an address that is there already, and ours.
func (h *Host) placedThing(p placed) thing {
	return thing{
		"address " + p.Address.Addr().String(),
		func() error {
			at, err := netlink.LinkByName(p.Link)
			if err != nil {
				return err
			}
			return h.place(p, at)
		},
		func() error {
			if err := p.remove(); err != nil && !gone(err) {
				return err
			}
			return h.record.dropAddress(p)
		},
		func(k *kernel) bool { return k.hasAddress(nil, p.Address) },
	}
}
