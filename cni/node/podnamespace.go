package node

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// sandbox is an open network namespace: a Pod's, or the Node's own.
type sandbox struct {
	ns    netns.NsHandle
	links *netlink.Handle
	id    string // device and inode: what the file is, not where it lies
}

// openSandbox opens a namespace by its file. The error is errGone if there is none.
func openSandbox(path string) (*sandbox, error) {
	ns, err := netns.GetFromPath(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	s := &sandbox{ns: ns}
	if s.id, err = idOf(int(ns)); err == nil {
		s.links, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// errGone says that a sandbox no longer exists.
var errGone = errors.New("the sandbox is gone")

func (s *sandbox) close() error {
	if s.links != nil {
		s.links.Close()
	}
	return s.ns.Close()
}

// nsfs is the magic number of the file system of namespace files.
const nsfs = 0x6e736673

// idOf identifies an open namespace. A plain file is errGone: while a runtime removes a
// namespace, its file is empty for an instant.
func idOf(fd int) (string, error) {
	var fsys unix.Statfs_t
	if err := unix.Fstatfs(fd, &fsys); err != nil {
		return "", err
	}
	if fsys.Type != nsfs {
		return "", errGone
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}

// sandboxFor opens the sandbox of a request. The Node's own namespace is an error.
func (n *Node) sandboxFor(path string) (*sandbox, error) {
	s, err := openSandbox(path)
	if err != nil {
		return nil, cni.Errorf(types.ErrInvalidNetNS, "the sandbox "+path, err)
	}
	if s.id == n.home.id {
		s.close()
		return nil, types.NewError(types.ErrInvalidNetNS, "the sandbox "+path, "it is the Node's own network namespace")
	}
	return s, nil
}
