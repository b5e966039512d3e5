package web

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Who is let in. A token lets one browser in once: it comes in the URL that
// `antrail page` prints, is good for one visit, and is then replaced by the next,
// so that one in a browser's history is worth nothing. For it the browser gets a
// cookie that no script can read and that is never sent along from other sites.
//
// A name in the Host header is refused unless it is localhost: a page of somebody
// else's whose name is made to mean this address (DNS rebinding) comes with that
// name.

const (
	// entrance is where a token is exchanged.
	entrance = "/enter"
	// maxSessions is how many browsers may be in; the one that came first goes.
	maxSessions = 16
	// sessionLife is how long a browser may stay.
	sessionLife = 24 * time.Hour
)

// secret is a token or the value of a cookie, hashed: comparing hashes tells
// nobody how much of a guess was right.
type secret [sha256.Size]byte

func hashed(text string) secret { return sha256.Sum256([]byte(text)) }

// door lets browsers in. It may be used by several goroutines.
type door struct {
	invite func(token string) error

	mu       sync.Mutex
	token    secret
	open     bool // there is a token
	sessions []session
}

// session is a browser that was let in.
type session struct {
	key  secret
	ends time.Time
}

// renew makes another token, and tells it.
func (d *door) renew() error {
	token := rand.Text()
	err := d.invite(token)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.token, d.open = hashed(token), err == nil
	return err
}

// enter exchanges a token for a cookie.
func (d *door) enter(w http.ResponseWriter, r *http.Request) {
	if !d.knows(r) {
		key := d.takeToken(r.URL.Query().Get("token"))
		if key == "" {
			http.Error(w, "401: this URL has been used, or is of an agent that has ended; antrail page prints one that is good", http.StatusUnauthorized)
			return
		}
		if err := d.renew(); err != nil {
			http.Error(w, "there is no token for the next browser: "+err.Error(), http.StatusInternalServerError)
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: cookieName(r.Host), Value: key, Path: "/", MaxAge: int(sessionLife / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	}
	// A redirect would belong to the site on which the URL was clicked, and come
	// without the cookie.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write([]byte(`<!doctype html><html lang="en"><title>antrail</title><link rel="icon" href="/icon.svg"><meta http-equiv="refresh" content="0;url=/"><p><a href="/">antrail</a></p></html>`))
}

// takeToken uses up a token, and returns the value of a new session's cookie; "" when
// the token is not the present one.
func (d *door) takeToken(token string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.open || hashed(token) != d.token {
		return ""
	}
	d.open = false
	key := rand.Text()
	d.sessions = append(d.sessions, session{hashed(key), time.Now().Add(sessionLife)})
	if len(d.sessions) > maxSessions {
		d.sessions = d.sessions[1:]
	}
	return key
}

// knows says whether a request is of a browser that was let in.
func (d *door) knows(r *http.Request) bool {
	c, err := r.Cookie(cookieName(r.Host))
	if err != nil {
		return false
	}
	key := hashed(c.Value)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		if s.key == key {
			return time.Now().Before(s.ends)
		}
	}
	return false
}

// cookieName tells pages apart that one host serves at several ports: cookies do
// not.
func cookieName(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return "antrail"
	}
	return "antrail-" + port
}

// namesAddress says whether a Host header is an IP address or localhost, with or
// without a port.
func namesAddress(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if err == nil && strings.Trim(port, "0123456789") != "" {
		return false
	}
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost"
}

// URL lets a browser in to the page at an address, with a token.
func URL(address, token string) string {
	u := url.URL{Scheme: "http", Host: address, Path: entrance, RawQuery: url.Values{"token": {token}}.Encode()}
	return u.String()
}
