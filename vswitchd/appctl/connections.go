package appctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/antrail/antrail/conntrack"
)

// ofDatapath takes the name of a datapath from the arguments, if the first one is that.
func ofDatapath(args []string) ([]string, error) {
	if len(args) == 0 || strings.ContainsAny(args[0], "=,") {
		return args, nil
	}
	if args[0] != datapath {
		return nil, fmt.Errorf("opening datapath %s failed (No such device)", args[0])
	}
	return args[1:], nil
}

// flushConnections is dpctl/flush-conntrack of all connections or of a zone.
func (s *Switch) flushConnections(_ context.Context, args []string) (string, error) {
	args, err := ofDatapath(args)
	if err != nil {
		return "", err
	}
	f := conntrack.Filter{}
	if len(args) > 0 {
		text, is := strings.CutPrefix(args[0], "zone=")
		if !is || len(args) > 1 {
			return "", errors.New("flush-conntrack takes a zone here; a tuple is not supported")
		}
		zone, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return "", errors.New("ovs-vswitchd: failed to parse zone (Invalid argument)")
		}
		f.Zone = new(uint16(zone))
	}
	s.Switch.Connections().Flush(f)
	return "", nil
}

// countConnections is dpctl/ct-get-nconns.
func (s *Switch) countConnections(_ context.Context, args []string) (string, error) {
	if _, err := ofDatapath(args); err != nil {
		return "", err
	}
	return strconv.Itoa(s.Switch.Connections().Stats().Entries), nil
}
