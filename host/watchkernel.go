package host

import (
	"context"
	"errors"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// watched are the kernel's notices of what another program may take away: links,
// addresses, routes, and sysctls of forwarding. Neighbours are not among them: a
// busy Node has too many. Nor are nftables, where each element of another's set
// would come: a table is asked for its generation (seenTable).
var watched = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_NETCONF,
	unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_NETCONF,
}

// Watch tells when somebody has changed links, addresses or routes of the Node, us
// included: one notice for all changes since the last was taken. It ends, and the
// channel is closed, with ctx.
func Watch(ctx context.Context) (<-chan struct{}, error) { return watch(ctx, watched...) }

// WatchLinks does the same for links alone.
func WatchLinks(ctx context.Context) (<-chan struct{}, error) {
	return watch(ctx, unix.RTNLGRP_LINK)
}

// watch tells of changes in groups of the kernel's.
func watch(ctx context.Context, groups ...uint) (<-chan struct{}, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.Close)
	changes := make(chan struct{}, 1)
	go runNotices(ctx, s, changes)
	return changes, nil
}

// runNotices passes notices on. Lost ones (ENOBUFS) are a notice, too.
func runNotices(ctx context.Context, s *nl.NetlinkSocket, changes chan<- struct{}) {
	defer close(changes)
	for {
		if _, _, err := s.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			return
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case changes <- struct{}{}:
		default:
		}
	}
}
