#!/bin/sh
# Makes Confidant's role and database at the first start. The role is its own: a superuser would see past row-level security.
set -eu
psql --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres --set password="$CONFIDANT_PASSWORD" <<'SQL'
CREATE ROLE confidant LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE confidant OWNER confidant;
SQL
