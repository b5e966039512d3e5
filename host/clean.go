package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/antrail/antrail/internal/nft"
	"github.com/antrail/antrail/internal/sysctl"
)

// Clean undoes a killed process's changes to the Node, by its record. In this order:
// nftables tables, routes to other Nodes, routing rules, addresses and routes of a card,
// addresses, sysctls, files and the record itself. It calls tell for each.
//
// If a sysctl has changed since, Clean leaves it and says so. If something is gone already,
// that is not an error. A failure does not stop the rest. The process must not run. Without a
// record Clean does nothing: tables of our name are then another agent's.
func Clean(path string, tell func(what string)) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r, err := loadRecord(path)
	if err != nil {
		return err
	}
	errs := []error{cleanTables(tell), cleanDirect(tell), cleanReplies(0, tell), r.cleanCard(tell)}
	for _, p := range slices.Backward(r.Addresses) {
		errs = append(errs, cleaned(fmt.Sprintf("address %v on %s", p.Address, p.Link), p.remove(), tell))
	}
	for _, s := range slices.Backward(r.Sysctls) {
		errs = append(errs, s.clean(tell))
	}
	if err := errors.Join(errs...); err != nil {
		return err // the record stays, for the next try
	}
	return r.cleanFiles(tell)
}

// cleanCard moves addresses and routes back to their card.
func (r *record) cleanCard(tell func(string)) error {
	m := r.Card
	if m == nil {
		return nil
	}
	if err := r.returnCard(); err != nil {
		return err
	}
	tell(fmt.Sprintf("moved %d addresses and %d routes back to %s", len(m.Addresses), len(m.Routes), m.Link))
	return nil
}

// cleaned reports a removal to tell. If the thing was gone already, it does nothing.
func cleaned(what string, err error, tell func(string)) error {
	switch {
	case err == nil:
		tell("removed " + what)
	case !gone(err) && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// cleanTables removes the nftables tables, by their name.
func cleanTables(tell func(string)) error {
	var errs []error
	for _, family := range []string{"inet", "netdev"} {
		var s nft.Script
		s.Table(family, TableName).Delete()
		errs = append(errs, cleaned("nftables table "+family+" "+TableName, s.Run(), tell))
	}
	return errors.Join(errs...)
}

// clean restores a sysctl.
func (s changed) clean(tell func(string)) error {
	now, err := sysctl.Read(s.File)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now == s.Before {
		return nil // its link is gone
	}
	if err == nil && s.Set != "" && now != s.Set {
		tell(fmt.Sprintf("left %s at %s: it was %s before, and was set to %s, but another program has changed it since", s.File, now, s.Before, s.Set))
		return nil
	}
	if err == nil {
		err = sysctl.Write(s.File, s.Before)
	}
	if err != nil {
		return err
	}
	tell(fmt.Sprintf("set %s back to %s", s.File, s.Before))
	return nil
}

// cleanFiles removes the files, then the record, then its directory if that is empty.
func (r *record) cleanFiles(tell func(string)) error {
	var errs []error
	for _, f := range r.Files {
		errs = append(errs, cleaned(f, os.Remove(f), tell))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := cleaned(r.path, os.Remove(r.path), tell); err != nil {
		return err
	}
	dir := filepath.Dir(r.path)
	if left, err := os.ReadDir(dir); err == nil && len(left) == 0 {
		return cleaned(dir, os.Remove(dir), tell)
	}
	return nil
}
