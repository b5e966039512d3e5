package node

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
	"sync"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
)

// The record tells who has which address, link and port. What is about to be made
// is written down before it is made, and forgotten when it is gone: so who is
// killed at any instant leaves a record of all there may be, and nobody is given
// what another may still have.
//
// It lies beside the agent's socket, for it needs to outlive the agent and not
// the machine: sandboxes end with the machine, and with them their links and
// addresses. A record of another boot is empty.

// attachment is what one interface of one sandbox has. It is a value: what is
// in the record is replaced, never written.
type attachment struct {
	cni.Attachment
	Netns   string         `json:"netns"`   // the sandbox's file
	NetnsID string         `json:"netnsID"` // what that was: device and inode
	Network string         `json:"network"`
	Pod     cni.Pod        `json:"pod"`
	IPs     []netip.Prefix `json:"ips"` // at most one per family
	Routes  []*types.Route `json:"routes,omitempty"`
	MAC     string         `json:"mac"`  // of the sandbox's end
	Link    string         `json:"link"` // the Node's end, and the port's name
	OFPort  uint32         `json:"ofPort"`
	// Table is where the routes of a further interface of a sandbox are; 0 for
	// the first one.
	Table  int       `json:"table,omitempty"`
	Egress cni.Limit `json:"egress,omitzero"`
	Routed bool      `json:"routed,omitempty"`
	// Serial grows from attachment to attachment.
	Serial uint64 `json:"serial"`
	// Made says that ADD came to its end.
	Made bool `json:"made,omitempty"`
}

// addrs are the addresses without their prefixes' lengths.
func (a *attachment) addrs() (all []netip.Addr) {
	for _, p := range a.IPs {
		all = append(all, p.Addr())
	}
	return all
}

// content is the file, as JSON.
type content struct {
	Boot        string       `json:"boot"`
	Serial      uint64       `json:"serial"`   // the last that was given
	LastPort    uint32       `json:"lastPort"` // likewise
	LastIPs     []netip.Addr `json:"lastIPs"`  // likewise, by family
	Attachments []attachment `json:"attachments"`
}

// record is the content with its file. It may be used by several goroutines.
type record struct {
	path string
	mu   sync.Mutex
	now  content
}

const bootID = "/proc/sys/kernel/random/boot_id"

// maxRecord bounds the file: an attachment takes less than a kilobyte.
const maxRecord = 64 << 20

// openRecord reads the file; one that is not there is empty. One that cannot be
// read is an error: without it, addresses would be given twice.
func openRecord(path string) (*record, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return nil, err
	}
	r := &record{path: path, now: content{Boot: strings.TrimSpace(string(boot))}}
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil && st.Size() > maxRecord {
		err = fmt.Errorf("%s: longer than %d bytes", path, maxRecord)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	was, err := parseContent(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it tells which pod has which address: remove it only when no pod runs", path, err)
	}
	if was.Boot == r.now.Boot {
		r.now = *was
	}
	return r, nil
}

// parseContent reads and checks a file.
func parseContent(text []byte) (*content, error) {
	c := &content{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, err
	}
	ips, names, ports := map[netip.Addr]bool{}, map[string]bool{}, map[uint32]bool{}
	for i := range c.Attachments {
		a := &c.Attachments[i]
		err := a.check()
		switch {
		case err != nil:
		case c.at(a.Attachment) != i:
			err = fmt.Errorf("interface %s of sandbox %s is there already", a.Interface, a.Container)
		case names[a.Link]:
			err = fmt.Errorf("link %s is another's", a.Link)
		case ports[a.OFPort]:
			err = fmt.Errorf("port %d is another's", a.OFPort)
		}
		if err != nil {
			return nil, fmt.Errorf("attachments[%d]: %w", i, err)
		}
		names[a.Link], ports[a.OFPort] = true, true
		for _, ip := range a.IPs {
			if ips[ip.Addr()] {
				return nil, fmt.Errorf("attachments[%d]: %v is another's", i, ip)
			}
			ips[ip.Addr()] = true
		}
	}
	return c, nil
}

// check says what an attachment of a file lacks, whatever the others have.
func (a *attachment) check() error {
	switch {
	case a.Container == "" || a.Interface == "" || a.Netns == "":
		return errors.New("no sandbox or interface")
	case a.Link == "" || len(a.Link) > maxName || strings.ContainsAny(a.Link, "/ "):
		return fmt.Errorf("%q is no name of a link", a.Link)
	case a.OFPort < firstPort || a.OFPort > lastPort:
		return fmt.Errorf("port %d is no pod's", a.OFPort)
	case len(a.IPs) == 0 || slices.ContainsFunc(a.IPs, func(ip netip.Prefix) bool { return !ip.IsValid() }):
		return fmt.Errorf("%v are no addresses", a.IPs)
	}
	_, err := parseMAC(a.MAC)
	return err
}

// find is the attachment of a key.
func (r *record) find(k cni.Attachment) (attachment, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.now.at(k); i >= 0 {
		return r.now.Attachments[i], true
	}
	return attachment{}, false
}

// all are the attachments, in the order in which they were given.
func (r *record) all() []attachment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.now.Attachments)
}

func (c *content) at(k cni.Attachment) int {
	return slices.IndexFunc(c.Attachments, func(a attachment) bool { return a.Attachment == k })
}

// change writes down what f makes of the content, or leaves file and content as
// they are.
func (r *record) change(f func(*content) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.now
	next.Attachments = slices.Clone(r.now.Attachments)
	next.LastIPs = slices.Clone(r.now.LastIPs)
	if err := f(&next); err != nil {
		return err
	}
	if err := next.save(r.path); err != nil {
		return cni.Errorf(types.ErrIOFailure, "the record of pods' addresses", err)
	}
	r.now = next
	return nil
}

// keep marks an attachment as made.
func (r *record) keep(k cni.Attachment) error {
	return r.change(func(c *content) error {
		i := c.at(k)
		if i < 0 {
			return cni.Errorf(types.ErrInternal, "the attachment is gone from the record", nil)
		}
		c.Attachments[i].Made = true
		return nil
	})
}

// forget removes an attachment.
func (r *record) forget(k cni.Attachment) error {
	return r.change(func(c *content) error {
		c.Attachments = slices.DeleteFunc(c.Attachments, func(a attachment) bool { return a.Attachment == k })
		return nil
	})
}

// save writes the file so that a reader, and who comes after a kill, sees the old
// one or the new one.
func (c *content) save(path string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}
