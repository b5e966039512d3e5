//go:build unix

package door

import "golang.org/x/sys/unix"

// controlCut says that a control message did not fit.
const controlCut = unix.MSG_CTRUNC

// controlSpace is how long a control message with n descriptors is.
func controlSpace(n int) int { return unix.CmsgSpace(4 * n) }

// controlOf is the control message that carries descriptors.
func controlOf(fds []int) []byte { return unix.UnixRights(fds...) }

// descriptors are those of a control message. Programs that this process starts do not
// get them.
func descriptors(control []byte) (fds []int, err error) {
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		some, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fds, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}
