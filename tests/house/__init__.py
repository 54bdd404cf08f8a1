"""What holds for the whole house: imports, SQL, DAGs, migrations, compose file, README."""
